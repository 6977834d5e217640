"""Operations, one file each: planned on the driver, run as row programs, committed on the driver."""
