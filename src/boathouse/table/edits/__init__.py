"""Edits: what a change does. Each is made by an operation and taken by a format; one that only some formats take is
refused by its name (`Change.require`)."""

from boathouse.table.edits.rows import (
    AddChangeFiles,
    AddDeletes,
    AddFiles,
    FileEdit,
    RemoveAll,
    RemoveFiles,
    SetDeletes,
)
from boathouse.table.edits.schema import (
    SCHEMA_EDITS,
    AddColumn,
    ClearFeature,
    DropColumn,
    RenameColumn,
    ReplaceSchema,
    SchemaEdit,
    SetComment,
    SetType,
)
from boathouse.table.edits.table import (
    AdvanceIdentity,
    CloneTable,
    CreateTable,
    RestoreTo,
    SetConstraint,
    SetFeature,
    SetName,
    SetProperties,
    SetTransaction,
    TableEdit,
)

Edit = FileEdit | SchemaEdit | TableEdit

__all__ = [
    "SCHEMA_EDITS",
    "AddChangeFiles",
    "AddColumn",
    "AddDeletes",
    "AddFiles",
    "AdvanceIdentity",
    "ClearFeature",
    "CloneTable",
    "CreateTable",
    "DropColumn",
    "Edit",
    "FileEdit",
    "RemoveAll",
    "RemoveFiles",
    "RenameColumn",
    "ReplaceSchema",
    "RestoreTo",
    "SchemaEdit",
    "SetComment",
    "SetConstraint",
    "SetDeletes",
    "SetFeature",
    "SetName",
    "SetProperties",
    "SetTransaction",
    "SetType",
    "TableEdit",
]
