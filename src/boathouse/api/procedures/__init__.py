"""The procedures of CALL, by the names, arguments and results that they have in iceberg-spark."""
