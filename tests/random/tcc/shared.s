# Shared memory of the faithful mode: tcc would make the section for reading
# alone, and it has no weak symbols for a section that is not there.
.section simt_shared,"aw"
.byte 0
.section .note.GNU-stack
