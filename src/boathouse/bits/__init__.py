"""Bytes and bits without opinion: varints, protobuf's wire format, roaring bitmaps, murmur3, entropy."""
