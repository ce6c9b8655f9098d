"""Checks JSON against a schema: schema.py SCHEMA FILE.

What the schemas in docs use of JSON Schema, and nothing else: a keyword that is
not known here is a mistake in the schema.
"""
import json
import sys

TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}
KNOWN = {
    "$schema", "title", "description", "type", "enum", "minimum", "items",
    "required", "properties", "additionalProperties",
}


def is_type(value, name):
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, TYPES[name])


def mistakes(value, schema, at="$"):
    unknown = set(schema) - KNOWN
    if unknown:
        yield f"{at}: the schema has {sorted(unknown)}, which are not checked"
    names = schema.get("type", list(TYPES))
    names = [names] if isinstance(names, str) else names
    if not any(is_type(value, name) for name in names):
        yield f"{at}: {value!r:.60} is no {' or '.join(names)}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{at}: {value!r:.60} is none of {schema['enum']}"
    if "minimum" in schema and value is not None and value < schema["minimum"]:
        yield f"{at}: {value} is below {schema['minimum']}"
    if isinstance(value, list):
        for i, item in enumerate(value):
            yield from mistakes(item, schema.get("items", {}), f"{at}[{i}]")
    if isinstance(value, dict):
        known = schema.get("properties", {})
        for name in schema.get("required", []):
            if name not in value:
                yield f"{at}: no {name}"
        for name, item in value.items():
            if name in known:
                yield from mistakes(item, known[name], f"{at}.{name}")
            elif not schema.get("additionalProperties", True):
                yield f"{at}: {name} is not in the schema"


def main():
    schema, value = (json.load(open(path)) for path in sys.argv[1:3])
    found = list(mistakes(value, schema))
    print("\n".join(found[:20]), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
