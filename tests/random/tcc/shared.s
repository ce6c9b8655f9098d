# Sections of emitted kernels that tcc would make for reading alone: the shared
# memory of the faithful mode, which may be empty, since tcc has no weak symbols
# to find that it is missing; and a table of tests/runtime/cuda/double.
.section simt_shared,"aw"
.section image_rows,"aw"
.section .note.GNU-stack
