"""Lance tables: manifests, transactions, deletion files; the codec of the data files is in `file`."""
