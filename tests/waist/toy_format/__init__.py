"""A table format in memory with everything hard in it: units of two parts, shared position deletes and equality
deletes with sequence numbers, two partition specs, refs, a swap instead of put-if-absent, stable row ids, and
history that is cleaned away. It keeps the waist honest: whatever `ops` and the engines need must work on it."""
