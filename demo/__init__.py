"""The demonstration: real flights, month by month, into one table of each format, through Spark."""
