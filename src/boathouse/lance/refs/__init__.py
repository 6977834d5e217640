"""Tags and branches: their files, the feature, and the versions that they keep."""
