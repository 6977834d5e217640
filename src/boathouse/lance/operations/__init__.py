"""The operations of Lance's transactions, a module each: which changes of ours become it, what it makes of a manifest,
and what it means beside a concurrent one."""
