#!/bin/sh
# The language server, driven as an editor does.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
expect 0 python3 "$SINTER_SOURCE/tests/tools/lsp/drive.py" "$SINTER" 'a folder'
expect_says good

# The extension has the files that it names, and vsce packs it without a
# question: validation.ts and package.ts there have its rules.
cp -rL "$SINTER_SOURCE/tools/editors/vscode" extension
cat >check.py <<'END'
import json, os, re, sys
os.chdir("extension")
with open("package.json") as f:
    package = json.load(f)
with open("language-configuration.json") as f:
    json.load(f)
for key in "name", "publisher":
    assert re.fullmatch("[a-z0-9][a-z0-9-]*", package[key]), key
assert re.fullmatch(r"\^\d+\.\d+\.\d+", package["engines"]["vscode"])
assert package["main"] and package["license"] and package["description"]
assert package["activationEvents"] == ["onLanguage:sinter"]
assert os.path.exists(".vscodeignore") != ("files" in package)
assert os.path.getsize("LICENSE") > 10000
with open("README.md") as f:
    assert "](" not in f.read(), "a link needs the address of a repository"
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
with open(sys.argv[2]) as f:
    assert json.load(f)["metadata"]["version"] == package["version"]
END
expect 0 python3 check.py "$("$SINTER" version)" \
    "$SINTER_SOURCE/tools/editors/tree-sitter/tree-sitter.json"
