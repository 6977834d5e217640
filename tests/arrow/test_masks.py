"""Masks as Arrow arrays and back."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from boathouse.arrow.masks import booleans, mask_of


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 100])
def test_there_and_back(count):
    mask = np.random.default_rng(count).integers(0, 2, count).astype(bool)
    array = booleans(mask)
    array.validate(full=True)
    assert array.equals(pa.array(mask.tolist(), pa.bool_())) and array.null_count == 0
    assert mask_of(array).tolist() == mask.tolist() and mask_of(array).dtype == bool
    for first in range(min(count, 10)):
        assert mask_of(array.slice(first, 60)).tolist() == mask[first : first + 60].tolist()
