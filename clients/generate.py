"""Writes the types of the Python and the TypeScript client, and the Rust types, from the API's document, and Python's
blocking client from the one for asyncio.

Arguments: the document, as `hundi openapi` prints it. With --check, fails where a file would change.
"""

import json
import keyword
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PREFIX = "#/components/schemas/"
NOTE = "Made from the API's document by clients/generate.py. Do not edit."

document = json.load(open(sys.argv[1]))
schemas = dict(document["components"]["schemas"])


def is_decimal(schema):
    """Amounts and rates are texts that hold a decimal number; their pattern says so."""
    return schema.get("type") in ("string", ["string", "null"]) and r"\.[0-9]" in schema.get("pattern", "")


def hoist(name, schema):
    """Gives objects that stand inside others a name of their own."""
    for field, inner in schema.get("properties", {}).items():
        if "properties" in inner:
            inner_name = name + "".join(part.capitalize() for part in field.split("_"))
            schemas[inner_name] = inner
            is_nullable = isinstance(inner.get("type"), list) and "null" in inner["type"]
            reference = {"$ref": PREFIX + inner_name}
            described = {"anyOf": [reference, {"type": "null"}]} if is_nullable else reference
            schema["properties"][field] = {**described, "description": inner.get("description", "")}
            hoist(inner_name, inner)


for name in list(schemas):
    hoist(name, schemas[name])


requests = {
    content["schema"]["$ref"].removeprefix(PREFIX)
    for operations in document["paths"].values()
    for operation in operations.values()
    if isinstance(operation, dict)
    for content in operation.get("requestBody", {}).get("content", {}).values()
}
requests |= {name for name in schemas if name.startswith(tuple(requests))}


def filters():
    """The parameters of each list, as an object. `created.gt` and the like are one member, `created`."""
    found = {}
    for operations in document["paths"].values():
        for operation in operations.values():
            if not isinstance(operation, dict) or not operation["operationId"].startswith("list_"):
                continue
            properties = found[camel(operation["operationId"])] = {"properties": {}}
            for parameter in operation["parameters"]:
                if parameter["in"] != "query":
                    continue
                described = {**parameter["schema"], "description": parameter["description"]}
                name, _, bound = parameter["name"].partition(".")
                if bound:
                    period = found.setdefault(camel(name) + "Period", {"properties": {}})
                    period["properties"][bound] = described
                    described = {"$ref": PREFIX + camel(name) + "Period", "description": "Only objects of this period."}
                properties["properties"][name] = described
    return found


class Python:
    path = HERE / "python/src/hundi/types.py"
    words = {"string": "str", "integer": "int", "boolean": "bool", "number": "float", "null": "None", "object": "dict[str, Any]"}

    def header(self):
        decimals = sorted({field for schema in schemas.values() for field, inner in schema.get("properties", {}).items() if has_decimal(inner)})
        lines = [f'"""The objects of the API. {NOTE}"""', "", "from __future__ import annotations", "", "from decimal import Decimal",
                 "from typing import Any, Literal", "", "from typing_extensions import NotRequired, TypedDict", "",
                 "#: Fields that hold a decimal number as text, in every object.",
                 "DECIMAL_FIELDS = frozenset(", "    {"]
        return lines + [f'        "{field}",' for field in decimals] + ["    }", ")"]

    def choice(self, words):
        return f"Literal[{', '.join(json.dumps(word) for word in words)}]"

    def array(self, item):
        return f"list[{item}]"

    def mapping(self, item):
        return f"dict[str, {item}]"

    def union(self, types):
        return " | ".join(dict.fromkeys(types))

    decimal = "Decimal"

    def object(self, name, schema):
        required = schema.get("required", [])
        if any(map(keyword.iskeyword, schema.get("properties", {}))):
            # The names of a class's fields cannot be keywords of the language.
            lines = ["", "", f"{name} = TypedDict(", f'    "{name}",', "    {"]
            for field, inner in schema["properties"].items():
                type_name = type_of(self, inner)
                annotation = type_name if field in required else f"NotRequired[{type_name}]"
                lines.append(f"        {field!r}: {annotation!r},")
            return lines + ["    },", ")"]
        lines = ["", "", f"class {name}(TypedDict):"]
        for field, inner in schema.get("properties", {}).items():
            type_name = type_of(self, inner)
            if name in FILTERS:
                # None is left out of the request.
                type_name += " | None"
            lines.append(f"    {field}: {type_name if field in required else f'NotRequired[{type_name}]'}")
            if description := inner.get("description"):
                lines.append(f'    """{description.splitlines()[0]}"""')
        return lines + ([] if schema.get("properties") else ["    pass"])


class TypeScript:
    path = HERE / "typescript/src/types.ts"
    words = {"string": "string", "integer": "number", "boolean": "boolean", "number": "number", "null": "null", "object": "Record<string, unknown>"}
    decimal = "Decimal"

    def header(self):
        return [f"// The objects of the API. {NOTE}", "", "/** A decimal number as text, such as `1000.00`. Never make a floating-point number of it. */",
                "export type Decimal = string;"]

    def choice(self, words):
        return " | ".join(json.dumps(word) for word in words)

    def array(self, item):
        return f"Array<{item}>"

    def mapping(self, item):
        return f"Record<string, {item}>"

    def union(self, types):
        return " | ".join(dict.fromkeys(types))

    def object(self, name, schema):
        required = schema.get("required", [])
        lines = ["", f"export interface {name} {{"]
        for field, inner in schema.get("properties", {}).items():
            if description := inner.get("description"):
                lines.append(f"  /** {description.splitlines()[0]} */")
            lines.append(f"  {field}{'' if field in required else '?'}: {type_of(self, inner)};")
        return lines + ["}"]


class Rust:
    path = HERE / "rust/src/types.rs"
    words = {"string": "String", "integer": "i64", "boolean": "bool", "number": "f64", "null": "()", "object": "serde_json::Value"}
    decimal = "Decimal"

    def header(self):
        return [f"// {NOTE}", "", "use std::collections::BTreeMap;", "", "use serde::{Deserialize, Serialize};", "", "use crate::Decimal;"]

    def choice(self, words):
        """A word that is always the same is a text; several are an enum with a name of its own."""
        if len(words) == 1:
            return "String"
        self.enum_words = words
        return self.enum_name

    def array(self, item):
        return f"Vec<{item}>"

    def mapping(self, item):
        return f"BTreeMap<String, {item}>"

    def union(self, types):
        if len(set(types)) == 1:
            return types[0]
        [kind] = set(types) - {"()"}
        return f"Option<{kind}>"

    def object(self, name, schema):
        fields, enums = [], []
        for field, inner in schema.get("properties", {}).items():
            self.enum_name, self.enum_words = name + camel(field), []
            kind = type_of(self, inner)
            if self.enum_words:
                enums += self.enum(self.enum_name, self.enum_words)
            if description := inner.get("description"):
                fields.append(f"    /// {description.splitlines()[0]}")
            if field not in schema.get("required", []):
                # In an update, null removes a value, and a field that is left out leaves it alone.
                kind = kind if kind.startswith("Option<") and not name.startswith("Update") else f"Option<{kind}>"
                fields.append('    #[serde(default, skip_serializing_if = "Option::is_none")]')
            fields.append(f"    pub {'r#' if field == 'type' else ''}{field}: {kind},")
        derived = "Clone, Debug, Default" if has_default(name) else "Clone, Debug"
        return ["", f"#[derive({derived}, PartialEq, Serialize, Deserialize)]", f"pub struct {name} {{", *fields, "}", *enums]

    def enum(self, name, words):
        lines = ["", "#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]", f"pub enum {name} {{"]
        for word in words:
            lines += [f'    #[serde(rename = "{word}")]', f"    {camel(word)}{'_' if word == 'self' else ''},"]
        return lines + ["    /// A word that is newer than these types.", "    #[serde(untagged)]", "    Unknown(String),", "}"]

    def footer(self):
        """For the tests: reads an object by the name of its type, and writes it again."""
        arms = [f'        "{name}" => again::<{name}>(object),' for name in sorted(schemas)]
        return ["", "#[cfg(test)]", "pub(crate) fn round_trip(name: &str, object: &str) -> serde_json::Result<serde_json::Value> {",
                "    fn again<T: Serialize + serde::de::DeserializeOwned>(object: &str) -> serde_json::Result<serde_json::Value> {",
                "        serde_json::to_value(serde_json::from_str::<T>(object)?)", "    }", "    match name {", *arms,
                '        _ => panic!("{name} has no type"),', "    }", "}"]


def camel(text):
    return "".join(part.capitalize() for part in text.split("_"))


def has_default(name):
    """Whether a request's body can begin empty: nothing that is required is a choice."""
    schema = schemas[name]
    required = [schema["properties"][field] for field in schema.get("required", [])]
    references = [inner["$ref"].removeprefix(PREFIX) for inner in required if "$ref" in inner]
    return name in requests and all(len(inner.get("enum", [])) < 2 for inner in required) and all(map(has_default, references))


def has_decimal(schema):
    return is_decimal(schema) or any(map(has_decimal, schema.get("anyOf", [])))


def type_of(language, schema):
    if "$ref" in schema:
        return schema["$ref"].removeprefix(PREFIX)
    if "anyOf" in schema:
        return language.union([type_of(language, choice) for choice in schema["anyOf"]])
    if "enum" in schema:
        words = [word for word in schema["enum"] if isinstance(word, str)]
        return language.union([language.choice(words), *([language.words["null"]] if None in schema["enum"] or "null" in schema.get("type", "") else [])])
    kinds = schema.get("type", "object")
    types = []
    for kind in kinds if isinstance(kinds, list) else [kinds]:
        if kind == "array":
            types.append(language.array(type_of(language, schema.get("items", {}))))
        elif kind == "object" and isinstance(schema.get("additionalProperties"), dict):
            types.append(language.mapping(type_of(language, schema["additionalProperties"])))
        elif kind == "string" and is_decimal(schema):
            types.append(language.decimal)
        else:
            types.append(language.words[kind])
    return language.union(types)


def blocking(text):
    """Python's client without asyncio, from the one with it."""
    note = "# Made from async_client.py by clients/generate.py. Do not edit.\n"
    text = text.replace('"""The client for asyncio: ', f'{note}"""The client: ', 1)
    # The last makes `Client` of `AsyncClient`, also of httpx.
    for found, put in (
        (r"import asyncio\n", ""),
        (r"import copy\n", "import copy\nimport time\n"),
        (r"asyncio\.sleep", "time.sleep"),
        (r"Callable\[\[float\], Awaitable\[None\]\]", "Callable[[float], None]"),
        (r"from collections\.abc import .*", "from collections.abc import Callable, Iterator"),
        (r"\b(async|await) ", ""),
        (r"__a(enter|exit|iter)__", r"__\1__"),
        (r"\baclose\b", "close"),
        (r"\bAsync(?=[A-Z])", ""),
    ):
        text, count = re.subn(found, put, text)
        assert count, found
    return text


FILTERS = filters()
files = {}
for language in (Python(), TypeScript(), Rust()):
    lines = language.header()
    # The Rust types are of bodies alone.
    objects = schemas if isinstance(language, Rust) else {**schemas, **FILTERS}
    for name in sorted(objects):
        lines += language.object(name, objects[name])
    lines += language.footer() if isinstance(language, Rust) else []
    files[language.path] = "\n".join(lines) + "\n"
SOURCES = HERE / "python/src/hundi"
files[SOURCES / "client.py"] = blocking((SOURCES / "async_client.py").read_text())

is_stale = False
for path, text in files.items():
    if "--check" not in sys.argv:
        path.write_text(text)
    elif path.read_text() != text:
        print(f"{path.relative_to(HERE)} is not what it is made from says: run clients/generate.py")
        is_stale = True
sys.exit(is_stale)
