"""Changed copies of a variant, as Spark's `variant_set`, `variant_insert`, `variant_delete`, `variant_array_append` and
`variant_strip_nulls` make them.

Untouched parts keep their exact types; the result is canonical. Values are Variants or anything that
`Variant.from_python` accepts; None is a variant null. `safe` returns None where EvaluationError would be raised.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from boathouse.errors import EvaluationError, ExpressionError
from boathouse.variant.path import Path, Step, as_path, format_path
from boathouse.variant.primitives import NULL_VALUE
from boathouse.variant.value_builder import ValueBuilder
from boathouse.variant.view import VariantView
from boathouse.variant.walk import Event, walk

V = TypeVar("V", bound=VariantView)

MAX_PADDING = 1 << 20
"""How many nulls may be inserted before an element that is set beyond the end of an array."""


def set(
    v: V, path: str | Sequence[Step], value: object, *, create_if_missing: bool = True, safe: bool = False
) -> V | None:
    """Replaces the value at the path, or creates it with its parents; arrays are padded with nulls.

    Without `create_if_missing` a missing path changes nothing. Raises EvaluationError where the path meets a value
    of another kind, ExpressionError for an invalid path and for `$`.
    """
    return _guarded(lambda: _set(v, _below_root(path), value, create_if_missing), safe)


def insert(v: V, path: str | Sequence[Step], value: object, *, safe: bool = False) -> V | None:
    """Adds a field, or an element before the one at the path; missing parents are created.

    Raises EvaluationError if the field exists or the path meets a value of another kind, ExpressionError as `set`.
    """
    return _guarded(lambda: _insert(v, _below_root(path), value), safe)


def delete(v: V, *paths: str | Sequence[Step] | None) -> V:
    """Removes the values at the paths, one after the other; a path without a value, or None, changes nothing.

    Raises ExpressionError as `set`.
    """
    steps = [_below_root(path) for path in paths if path is not None]
    found = _copy(v)
    for path in steps:
        trail = _trail(found, path, strict=False)
        if len(trail) > len(path):
            found = _write(trail, path, removed=True)
    return found


def array_append(v: V, path: str | Sequence[Step], value: object, *, safe: bool = False) -> V | None:
    """Adds an element at the end of the array at the path; a missing path changes nothing.

    Raises EvaluationError if the value is not an array, ExpressionError for an invalid path.
    """
    return _guarded(lambda: _append(v, as_path(path), value), safe)


def strip_nulls(v: V, *, include_arrays: bool = True) -> V:
    """Removes null fields and, unless `include_arrays` is false, null elements; a null at the top stays."""
    data, (pos, end), out = v.buffer, v.span, ValueBuilder()
    objects: list[bool] = []
    for step in walk(data, pos, end, v.dictionary):
        if step.event is Event.END:
            objects.pop()
            out.end()
            continue
        in_object = bool(objects) and objects[-1]
        scalar = step.event is Event.SCALAR
        if scalar and objects and data[step.pos] == NULL_VALUE[0] and (in_object or include_arrays):
            continue
        if in_object:
            out.key(str(step.key))
        if scalar:
            out.append_variant(v.view(v.dictionary, data, step.pos, step.end))
            continue
        objects.append(step.event is Event.OBJECT)
        out.begin_object() if objects[-1] else out.begin_array()
    return type(v)(*out.encoded())


def _guarded(edit: Callable[[], V], safe: bool) -> V | None:
    try:
        return edit()
    except EvaluationError:
        if safe:
            return None
        raise


def _below_root(path: str | Sequence[Step]) -> Path:
    steps = as_path(path)
    if not steps:
        raise ExpressionError("$ is the whole variant", advice="name a field or an element below it")
    return steps


def _copy(v: V) -> V:
    """The canonical form, in which no two children share bytes, so that every later copy is linear."""
    return type(v)(*ValueBuilder().append_variant(v).encoded())


def _set(v: V, path: Path, value: object, create: bool) -> V:
    v = _copy(v)
    trail = _trail(v, path)
    return _write(trail, path, value) if create or len(trail) > len(path) else v


def _insert(v: V, path: Path, value: object) -> V:
    trail = _trail(_copy(v), path)
    if len(trail) > len(path):
        if isinstance(path[-1], str):
            raise EvaluationError(f"{format_path(path)} exists", advice="set it, or delete it first")
        trail.pop()
    return _write(trail, path, value)


def _append(v: V, path: Path, value: object) -> V:
    v = _copy(v)
    trail = _trail(v, path)
    if len(trail) <= len(path):
        return v
    target = trail[-1]
    if target.type != "array":
        raise _mismatch(path, len(path), target)
    return _write(trail, (*path, len(target)), value)


def _trail(v: V, path: Path, strict: bool = True) -> list[V]:
    """The values along the path, `v` first, as far as they exist.

    If `strict`, a step into a value of another kind raises EvaluationError.
    """
    trail = [v]
    for i, step in enumerate(path):
        here = trail[-1]
        if strict and here.type != ("object" if isinstance(step, str) else "array"):
            raise _mismatch(path, i, here)
        found = here.get((step,))
        if found is None:
            break
        trail.append(found)
    return trail


def _mismatch(path: Path, at: int, here: V) -> EvaluationError:
    return EvaluationError(
        f"{format_path(path)} does not fit: at {format_path(path[:at])} there is the type {here.type}",
        advice="set that value to an object or array first, or pass safe=True for None",
    )


def _write(trail: list[V], path: Path, value: object = None, *, removed: bool = False) -> V:
    """A copy of trail[0] with `value` at the path, or without the value there if `removed`.

    Where the trail ends before the path's last value, that value is new; in an array it goes before the element at its
    position.
    """
    out = ValueBuilder()
    after: list[Sequence[V]] = []
    last = len(path) - 1
    for i, step in enumerate(path):
        box = trail[i] if i < len(trail) else None
        exists = i + 1 < len(trail)
        if isinstance(step, str):
            after.append(())
            out.begin_object()
            _copy_fields(out, box, step)
            if i < last or not removed:
                out.key(step)
        else:
            elements = () if box is None else box.values()
            after.append(elements[step + exists :])
            _begin_array(out, elements, step)
    if not removed:
        out.append_variant(value) if isinstance(value, VariantView) else out.append(value)
    for rest in reversed(after):
        for element in rest:
            out.append_variant(element)
        out.end()
    return type(trail[0])(*out.encoded())


def _copy_fields(out: ValueBuilder, box: V | None, but: str) -> None:
    for name, child in () if box is None else box.items():
        if name != but:
            out.key(name).append_variant(child)


def _begin_array(out: ValueBuilder, elements: Sequence[V], index: int) -> None:
    missing = index - len(elements)
    if missing > MAX_PADDING:
        raise EvaluationError(
            f"position {index:,} is {missing:,} beyond the end of the array",
            advice="append, or choose a nearer position",
        )
    out.begin_array()
    for element in elements[:index]:
        out.append_variant(element)
    for _ in range(missing):
        out.append_null()
