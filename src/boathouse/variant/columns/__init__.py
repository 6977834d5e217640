"""Kernels over whole columns of variants: numpy over Arrow's buffers, every read bounds-checked."""
