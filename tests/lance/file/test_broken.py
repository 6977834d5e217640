"""Cut and changed bytes: typed errors or rows, never anything else."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from boathouse.errors import BoathouseError, CorruptTableError

NAMES = ["null_int64", "hex", "category", "list_string", "struct_list", "null_embedding", "runs", "list_long", "map"]


def mutate(raw, rnd):
    out = bytearray(raw)
    kind = rnd.randrange(5)
    if kind == 0:
        return bytes(out[: rnd.randrange(len(out))])
    if kind == 1:
        at = rnd.randrange(len(out))
        del out[at : at + rnd.randrange(1, 9)]
        return bytes(out)
    span = {2: len(out), 3: min(len(out), 700), 4: min(len(out), 300)}[kind]
    for _ in range(rnd.randrange(1, 4)):
        at = rnd.randrange(span)
        out[at if kind == 4 else len(out) - 1 - at] = rnd.choice([0, 1, 127, 128, 255, rnd.randrange(256)])
    return bytes(out)


@pytest.mark.spec("L-100", "L-110")
@pytest.mark.parametrize("version", ["2.2", "2.1", "2.0", "legacy"])
def test_mutations(kit, version):
    rnd = random.Random(version)
    refused = 0
    for name in NAMES if version == "2.2" else [n for n in NAMES if n not in ("map", "struct_list")]:
        path, _ = kit.pylance(kit.build(name, 1500), version)
        raw = Path(path).read_bytes()
        for _ in range(25):
            try:
                with kit.open(mutate(raw, rnd)) as file:
                    for column in file.read().columns:
                        column.validate()
                    if file.num_rows > 3:
                        file.take(np.array([0, file.num_rows - 1]))
            except BoathouseError as error:
                assert error.where
                refused += 1
    assert refused > 20


@pytest.mark.spec("L-100")
def test_errors_name_the_place(kit):
    path, _ = kit.pylance(kit.build("hex", 1500))
    raw = bytearray(Path(path).read_bytes())
    raw[0:4] = b"\xff\xff\xff\xff"  # the words that say how long chunks are
    with pytest.raises(CorruptTableError, match=r"column 0 \(`a`\), page 0: ") as caught:
        kit.open(bytes(raw)).read()
    assert caught.value.where
    for broken in (b"", b"LANC", raw[:-1], raw[:10] + raw[-40:]):
        with pytest.raises(CorruptTableError, match="container"):
            kit.open(bytes(broken))
