"""The protobuf messages of Lance data files: container, page encodings of 2.0 and of 2.1/2.2."""

from __future__ import annotations

from dataclasses import dataclass

from boathouse.bits.protobuf import Message, mapping, nested, repeated, scalar
from boathouse.lance.file.fields import Field, SchemaMessage


@dataclass(frozen=True, kw_only=True)
class FileDescriptor(Message):
    """Global buffer 0: schema and number of rows."""

    schema: SchemaMessage | None = nested(1, SchemaMessage)
    length: int = scalar(2, "uint64")


@dataclass(frozen=True, kw_only=True)
class AnyMessage(Message):
    """google.protobuf.Any."""

    type_url: str = scalar(1, "string")
    value: bytes = scalar(2, "bytes")


@dataclass(frozen=True, kw_only=True)
class DeferredEncoding(Message):
    location: int = scalar(1, "uint64")
    length: int = scalar(2, "uint64")


@dataclass(frozen=True, kw_only=True)
class DirectEncoding(Message):
    encoding: bytes = scalar(1, "bytes")


@dataclass(frozen=True, kw_only=True)
class Encoding(Message):
    indirect: DeferredEncoding | None = nested(1, DeferredEncoding, oneof="location")
    direct: DirectEncoding | None = nested(2, DirectEncoding, oneof="location")
    none: Message | None = nested(3, Message, oneof="location")


@dataclass(frozen=True, kw_only=True)
class Page(Message):
    """`length` in rows of the column (items for 2.0 item columns); `priority` is the first top-level row."""

    buffer_offsets: tuple[int, ...] = repeated(1, "uint64")
    buffer_sizes: tuple[int, ...] = repeated(2, "uint64")
    length: int = scalar(3, "uint64")
    encoding: Encoding | None = nested(4, Encoding)
    priority: int = scalar(5, "uint64")


@dataclass(frozen=True, kw_only=True)
class ColumnMetadata(Message):
    encoding: Encoding | None = nested(1, Encoding)
    pages: tuple[Page, ...] = repeated(2, Page)
    buffer_offsets: tuple[int, ...] = repeated(3, "uint64")
    buffer_sizes: tuple[int, ...] = repeated(4, "uint64")


@dataclass(frozen=True, kw_only=True)
class BlobColumn(Message):
    inner: ColumnEncoding | None = nested(1, lambda: ColumnEncoding)


@dataclass(frozen=True, kw_only=True)
class ColumnEncoding(Message):
    values: Message | None = nested(1, Message, oneof="column")
    zone_index: Message | None = nested(2, Message, oneof="column")
    blob: BlobColumn | None = nested(3, BlobColumn, oneof="column")


# --- 2.1 and 2.2 -----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class BufferCompression(Message):
    scheme: int = scalar(1, "enum")  # 1 LZ4, 2 ZSTD
    level: int | None = scalar(2, "int32", optional=True)


@dataclass(frozen=True, kw_only=True)
class Flat(Message):
    bits_per_value: int = scalar(1, "uint64")
    data: BufferCompression | None = nested(2, BufferCompression)


@dataclass(frozen=True, kw_only=True)
class Variable(Message):
    offsets: CompressiveEncoding | None = nested(1, lambda: CompressiveEncoding)
    values: BufferCompression | None = nested(2, BufferCompression)


@dataclass(frozen=True, kw_only=True)
class Constant(Message):
    value: bytes | None = scalar(1, "bytes", optional=True)


@dataclass(frozen=True, kw_only=True)
class OutOfLineBitpacking(Message):
    uncompressed_bits_per_value: int = scalar(1, "uint64")
    values: CompressiveEncoding | None = nested(3, lambda: CompressiveEncoding)


@dataclass(frozen=True, kw_only=True)
class InlineBitpacking(Message):
    uncompressed_bits_per_value: int = scalar(1, "uint64")
    values: BufferCompression | None = nested(2, BufferCompression)


@dataclass(frozen=True, kw_only=True)
class Fsst(Message):
    symbol_table: bytes = scalar(1, "bytes")
    values: CompressiveEncoding | None = nested(2, lambda: CompressiveEncoding)


@dataclass(frozen=True, kw_only=True)
class DictionaryEncoding(Message):
    indices: CompressiveEncoding | None = nested(1, lambda: CompressiveEncoding)
    items: CompressiveEncoding | None = nested(2, lambda: CompressiveEncoding)
    num_items: int = scalar(3, "uint32")


@dataclass(frozen=True, kw_only=True)
class Rle(Message):
    values: CompressiveEncoding | None = nested(1, lambda: CompressiveEncoding)
    run_lengths: CompressiveEncoding | None = nested(2, lambda: CompressiveEncoding)


@dataclass(frozen=True, kw_only=True)
class ByteStreamSplit(Message):
    values: CompressiveEncoding | None = nested(1, lambda: CompressiveEncoding)


@dataclass(frozen=True, kw_only=True)
class General(Message):
    compression: BufferCompression | None = nested(1, BufferCompression)
    values: CompressiveEncoding | None = nested(3, lambda: CompressiveEncoding)


@dataclass(frozen=True, kw_only=True)
class FixedSizeList(Message):
    items_per_value: int = scalar(1, "uint64")
    values: CompressiveEncoding | None = nested(2, lambda: CompressiveEncoding)
    has_validity: bool = scalar(3, "bool")


@dataclass(frozen=True, kw_only=True)
class PackedStruct(Message):
    bits_per_value: tuple[int, ...] = repeated(1, "uint64")
    values: CompressiveEncoding | None = nested(2, lambda: CompressiveEncoding)


@dataclass(frozen=True, kw_only=True)
class PackedField(Message):
    value: CompressiveEncoding | None = nested(1, lambda: CompressiveEncoding)
    bits_per_value: int | None = scalar(2, "uint64", oneof="layout")
    bits_per_length: int | None = scalar(3, "uint64", oneof="layout")


@dataclass(frozen=True, kw_only=True)
class VariablePackedStruct(Message):
    fields: tuple[PackedField, ...] = repeated(1, PackedField)


@dataclass(frozen=True, kw_only=True)
class CompressiveEncoding(Message):
    flat: Flat | None = nested(1, Flat, oneof="compression")
    variable: Variable | None = nested(2, Variable, oneof="compression")
    constant: Constant | None = nested(3, Constant, oneof="compression")
    out_of_line_bitpacking: OutOfLineBitpacking | None = nested(4, OutOfLineBitpacking, oneof="compression")
    inline_bitpacking: InlineBitpacking | None = nested(5, InlineBitpacking, oneof="compression")
    fsst: Fsst | None = nested(6, Fsst, oneof="compression")
    dictionary: DictionaryEncoding | None = nested(7, DictionaryEncoding, oneof="compression")
    rle: Rle | None = nested(8, Rle, oneof="compression")
    byte_stream_split: ByteStreamSplit | None = nested(9, ByteStreamSplit, oneof="compression")
    general: General | None = nested(10, General, oneof="compression")
    fixed_size_list: FixedSizeList | None = nested(11, FixedSizeList, oneof="compression")
    packed_struct: PackedStruct | None = nested(12, PackedStruct, oneof="compression")
    variable_packed_struct: VariablePackedStruct | None = nested(13, VariablePackedStruct, oneof="compression")


ALL_VALID_ITEM, ALL_VALID_LIST, NULLABLE_ITEM, NULLABLE_LIST, EMPTYABLE_LIST, NULL_AND_EMPTY_LIST = range(1, 7)


@dataclass(frozen=True, kw_only=True)
class MiniBlockLayout(Message):
    rep_compression: CompressiveEncoding | None = nested(1, CompressiveEncoding)
    def_compression: CompressiveEncoding | None = nested(2, CompressiveEncoding)
    value_compression: CompressiveEncoding | None = nested(3, CompressiveEncoding)
    dictionary: CompressiveEncoding | None = nested(4, CompressiveEncoding)
    num_dictionary_items: int = scalar(5, "uint64")
    layers: tuple[int, ...] = repeated(6, "enum")
    num_buffers: int = scalar(7, "uint64")
    repetition_index_depth: int = scalar(8, "uint32")
    num_items: int = scalar(9, "uint64")
    has_large_chunk: bool = scalar(10, "bool")


@dataclass(frozen=True, kw_only=True)
class FullZipLayout(Message):
    bits_rep: int = scalar(1, "uint32")
    bits_def: int = scalar(2, "uint32")
    bits_per_value: int | None = scalar(3, "uint32", oneof="details")
    bits_per_offset: int | None = scalar(4, "uint32", oneof="details")
    num_items: int = scalar(5, "uint64")
    num_visible_items: int = scalar(6, "uint64")
    value_compression: CompressiveEncoding | None = nested(7, CompressiveEncoding)
    layers: tuple[int, ...] = repeated(8, "enum")


@dataclass(frozen=True, kw_only=True)
class ConstantLayout(Message):
    layers: tuple[int, ...] = repeated(5, "enum")
    inline_value: bytes | None = scalar(6, "bytes", optional=True)
    rep_compression: CompressiveEncoding | None = nested(7, CompressiveEncoding)
    def_compression: CompressiveEncoding | None = nested(8, CompressiveEncoding)
    num_rep_values: int = scalar(9, "uint64")
    num_def_values: int = scalar(10, "uint64")


@dataclass(frozen=True, kw_only=True)
class BlobLayout(Message):
    inner_layout: PageLayout | None = nested(1, lambda: PageLayout)
    layers: tuple[int, ...] = repeated(2, "enum")


@dataclass(frozen=True, kw_only=True)
class PageLayout(Message):
    mini_block: MiniBlockLayout | None = nested(1, MiniBlockLayout, oneof="layout")
    constant: ConstantLayout | None = nested(2, ConstantLayout, oneof="layout")
    full_zip: FullZipLayout | None = nested(3, FullZipLayout, oneof="layout")
    blob: BlobLayout | None = nested(4, BlobLayout, oneof="layout")


# --- 2.0 -------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class BufferRef(Message):
    """`buffer_type`: 0 of the page, 1 of the column, 2 of the file."""

    buffer_index: int = scalar(1, "uint32")
    buffer_type: int = scalar(2, "enum")


@dataclass(frozen=True, kw_only=True)
class NamedCompression(Message):
    scheme: str = scalar(1, "string")


@dataclass(frozen=True, kw_only=True)
class ArrayFlat(Message):
    bits_per_value: int = scalar(1, "uint64")
    buffer: BufferRef | None = nested(2, BufferRef)
    compression: NamedCompression | None = nested(3, NamedCompression)


@dataclass(frozen=True, kw_only=True)
class NoNulls(Message):
    values: ArrayEncoding | None = nested(1, lambda: ArrayEncoding)


@dataclass(frozen=True, kw_only=True)
class SomeNulls(Message):
    validity: ArrayEncoding | None = nested(1, lambda: ArrayEncoding)
    values: ArrayEncoding | None = nested(2, lambda: ArrayEncoding)


@dataclass(frozen=True, kw_only=True)
class Nullable(Message):
    no_nulls: NoNulls | None = nested(1, NoNulls, oneof="nullability")
    some_nulls: SomeNulls | None = nested(2, SomeNulls, oneof="nullability")
    all_nulls: Message | None = nested(3, Message, oneof="nullability")


@dataclass(frozen=True, kw_only=True)
class ArrayFixedSizeList(Message):
    dimension: int = scalar(1, "uint32")
    items: ArrayEncoding | None = nested(2, lambda: ArrayEncoding)
    has_validity: bool = scalar(3, "bool")


@dataclass(frozen=True, kw_only=True)
class ArrayList(Message):
    offsets: ArrayEncoding | None = nested(1, lambda: ArrayEncoding)
    null_offset_adjustment: int = scalar(2, "uint64")
    num_items: int = scalar(3, "uint64")


@dataclass(frozen=True, kw_only=True)
class ArrayBinary(Message):
    indices: ArrayEncoding | None = nested(1, lambda: ArrayEncoding)
    bytes: ArrayEncoding | None = nested(2, lambda: ArrayEncoding)
    null_adjustment: int = scalar(3, "uint64")


@dataclass(frozen=True, kw_only=True)
class ArrayDictionary(Message):
    indices: ArrayEncoding | None = nested(1, lambda: ArrayEncoding)
    items: ArrayEncoding | None = nested(2, lambda: ArrayEncoding)
    num_items: int = scalar(3, "uint32")


@dataclass(frozen=True, kw_only=True)
class ArrayFsst(Message):
    binary: ArrayEncoding | None = nested(1, lambda: ArrayEncoding)
    symbol_table: bytes = scalar(2, "bytes")


@dataclass(frozen=True, kw_only=True)
class ArrayPackedStruct(Message):
    inner: tuple[ArrayEncoding, ...] = repeated(1, lambda: ArrayEncoding)
    buffer: BufferRef | None = nested(2, BufferRef)


@dataclass(frozen=True, kw_only=True)
class ArrayEncoding(Message):
    """The encoding of a page of a 2.0 column; fields not declared here are refused by their number."""

    flat: ArrayFlat | None = nested(1, ArrayFlat, oneof="array")
    nullable: Nullable | None = nested(2, Nullable, oneof="array")
    fixed_size_list: ArrayFixedSizeList | None = nested(3, ArrayFixedSizeList, oneof="array")
    list: ArrayList | None = nested(4, ArrayList, oneof="array")
    struct: Message | None = nested(5, Message, oneof="array")
    binary: ArrayBinary | None = nested(6, ArrayBinary, oneof="array")
    dictionary: ArrayDictionary | None = nested(7, ArrayDictionary, oneof="array")
    fsst: ArrayFsst | None = nested(8, ArrayFsst, oneof="array")
    packed_struct: ArrayPackedStruct | None = nested(9, ArrayPackedStruct, oneof="array")
    bitpacked: Message | None = nested(10, Message, oneof="array")
    fixed_size_binary: Message | None = nested(11, Message, oneof="array")
    bitpacked_for_non_neg: Message | None = nested(12, Message, oneof="array")
    constant: Message | None = nested(13, Message, oneof="array")


# --- 0.1 -------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class LegacyMetadata(Message):
    manifest_position: int = scalar(1, "uint64")
    batch_offsets: tuple[int, ...] = repeated(2, "int32")
    page_table_position: int = scalar(3, "uint64")


@dataclass(frozen=True, kw_only=True)
class LegacyManifest(Message):
    """The part of a manifest that a 0.1 data file embeds: its fields."""

    fields: tuple[Field, ...] = repeated(1, Field)
    schema_metadata: dict[str, bytes] = mapping(5, "string", "bytes")
