"""sass.py NVDISASM FILE.bin...: counts instructions of the tile kernels that a
trainer carries (runtime/machine_code.h): an architecture, tensor core
instructions, accesses of local memory, atomics of global memory and the name of
the kernel.  Status 1 if one has no tensor core instruction, spills, or has an
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


def main(nvdisasm, files):
    bad = count = 0
    for file in files:
        for arch, code in cubins(file):
            text = disassembly(nvdisasm, code)
            name = re.search(r"\.text\.(\w+)", text).group(1)
            found = {key: len(p.findall(text)) for key, p in COUNTED.items()}
            good = found["tensor"] > 0 and not found["local"] and \
                not found["atomic"]
            print(f"sm_{arch}", *found.values(), name,
                  *([] if good else ["BAD"]))
            bad += not good
            count += 1
    print(f"{count} tile kernels, {bad} bad")
    return bad > 0


sys.exit(main(sys.argv[1], sys.argv[2:]))
