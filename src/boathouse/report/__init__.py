"""A table on one page of HTML: what it is, its history, its files, what makes it slow, and what to run.

`facts` and `column_facts` gather, `advice` judges, `pictures` draws, `page` puts them together; `write` is all of it.
"""

from boathouse.report.page import write as write
