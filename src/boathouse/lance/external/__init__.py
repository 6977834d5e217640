"""External manifest stores: where writers of a table agree on its versions if its object store cannot decide that."""
