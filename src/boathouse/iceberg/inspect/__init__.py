"""The metadata tables of Iceberg's reference, from the columns of manifests and the metadata document."""
