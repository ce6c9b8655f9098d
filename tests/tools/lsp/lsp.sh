#!/bin/sh
# The language server, driven as an editor does.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
expect 0 python3 "$SINTER_SOURCE/tests/tools/lsp/drive.py" "$SINTER" 'a folder'
expect_says good

# The extension has the files that it names, and vsce's required fields.
cp -rL "$SINTER_SOURCE/tools/editors/vscode" extension
cat >check.py <<'END'
import json, os, re, sys
os.chdir("extension")
with open("package.json") as f:
    package = json.load(f)
with open("language-configuration.json") as f:
    json.load(f)
for key in "name", "publisher", "version", "engines", "main", "license":
    assert package[key], key
(grammar,) = package["contributes"]["grammars"]
(language,) = package["contributes"]["languages"]
for path in package["main"], grammar["path"], language["configuration"]:
    assert os.path.getsize(path) > 0, path
with open(grammar["path"]) as f:
    assert json.load(f)["scopeName"] == grammar["scopeName"]
with open(package["main"]) as f:
    wanted = set(re.findall(r'require\("([a-z-]+)', f.read()))
assert wanted - {"vscode"} == set(package["dependencies"]), wanted
assert package["version"] == sys.argv[1].split()[1], package["version"]
END
expect 0 python3 check.py "$("$SINTER" version)"
