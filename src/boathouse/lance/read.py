"""draft"""


def read(task):
    raise NotImplementedError
    yield
