"""sass.py NVDISASM FILE.bin...: counts instructions of the tile kernels that a
trainer carries (runtime/machine_code.h): an architecture, tensor core
instructions, accesses of local memory, atomics of global memory, the name of
the kernel, all of its instructions, and those of the loop over steps, the first
with tensor core instructions.  Status 1 if one has no tensor core instruction, spills, or has an
atomic."""
import re
import struct
import subprocess
import sys
import tempfile

TILE_CUBIN = 2
COUNTED = {
    "tensor": re.compile(r"\b(HGMMA|HMMA|UTC[A-Z]*MMA)\b"),
    "local": re.compile(r"\b(STL|LDL)\b"),
    "atomic": re.compile(r"\b(RED|REDG|ATOM|ATOMG)\b"),
}


def cubins(file):
    data = open(file, "rb").read()
    at = 0
    while at + 16 <= len(data):
        arch, form, length = struct.unpack_from("<iiQ", data, at)
        at += 16
        if form >= TILE_CUBIN:
            yield arch, data[at:at + length]
        at += (length + 15) // 16 * 16


def disassembly(nvdisasm, code):
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(code)
        file.flush()
        return subprocess.run([nvdisasm, "-c", file.name], check=True,
                              capture_output=True, text=True).stdout


def instructions(text, name):
    """The instructions of a function, and of its loop over steps."""
    code, label, loop = [], {}, 0
    for line in text.split(f".text.{name}:", 1)[1].splitlines():
        if line.lstrip().startswith(".section"):
            break
        if found := re.match(r"(\.L_x_\d+):", line):
            label[found[1]] = len(code)
        elif found := re.match(r"\s+/\*[0-9a-f]+\*/\s+(.*);", line):
            code.append(found[1])
    for end, line in enumerate(code):
        found = re.search(r"\bBRA\b.*`\((\.L_x_\d+)\)", line)
        first = label.get(found[1], end + 1) if found else end + 1
        body = code[first:end + 1]
        if any(COUNTED["tensor"].search(x) for x in body):
            loop = len(body)
            break
    return len(code), loop


def main(nvdisasm, files):
    bad = count = 0
    for file in files:
        for arch, code in cubins(file):
            text = disassembly(nvdisasm, code)
            name = min(re.findall(r"\.text\.(\w+)", text), key=len)
            found = {key: len(p.findall(text)) for key, p in COUNTED.items()}
            good = found["tensor"] > 0 and not found["local"] and \
                not found["atomic"]
            print(f"sm_{arch}", *found.values(), name,
                  *instructions(text, name), *([] if good else ["BAD"]))
            bad += not good
            count += 1
    print(f"{count} tile kernels, {bad} bad")
    return bad > 0


sys.exit(main(sys.argv[1], sys.argv[2:]))
