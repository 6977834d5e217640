"""Codecs that know no table format: protobuf, roaring bitmaps, FastLanes, FSST, murmur3, checksums, time zones; clock
and randomness."""
