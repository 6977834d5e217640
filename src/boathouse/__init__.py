"""Delta, Iceberg and Lance tables from PySpark and Python. No JARs."""
