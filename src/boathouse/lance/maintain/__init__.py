"""Work on the files of Lance tables: versions that expire, and orphans."""
