// What a GPU would refuse, hang on, or do by luck ends the program, with the
// line of the text that it is about.
#define _POSIX_C_SOURCE 200809L
#include "tests/ptx/check_ptx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct {
    Program program;
    const char *says, *at; // a part of the line, if one is named
} Refused;

// clang-format off
static const Refused cases[] = {
    {{.body = "\tld.global.v4.f32 \t{%f1, %f2, %f3, %f4}, [%rd11+4];",
      .grid = 1, .threads = 1},
     "16 bytes at an address that they do not divide", "ld.global.v4"},
    {{.body = "\tst.global.v2.u32 \t[%rd12+4], {%r1, %r2};",
      .grid = 1, .threads = 1},
     "8 bytes at an address that they do not divide", "st.global.v2"},
    {{.body = "\tld.global.u16 \t%rs1, [%rd11+1];", .grid = 1, .threads = 1},
     "2 bytes at an address that they do not divide", "ld.global.u16"},
    {{.body = "\t.shared .align 16 .b8 shared[64];\n"
              "\tld.shared.v4.u32 \t{%r1, %r2, %r3, %r4}, [shared+8];",
      .grid = 1, .threads = 1},
     "16 bytes at an address that they do not divide", "ld.shared.v4"},
    {{.body = "\t.shared .align 4 .b8 shared[64];\n"
              "\tmov.u32 \t%r1, shared;\n"
              "\tst.shared.u32 \t[%r1+64], %r0;",
      .grid = 1, .threads = 1},
     "shared memory is left", "st.shared"},
    {{.body = "\t.local .align 4 .b8 kept[8];\n"
              "\tmov.u64 \t%rd1, kept;\n"
              "\tst.local.u32 \t[%rd1+8], %r0;",
      .grid = 1, .threads = 1},
     "local memory is left", "st.local"},
    {{.body = "\t.local .align 4 .b8 kept[8];\n"
              "\tld.local.u32 \t%r1, [kept+-4];",
      .grid = 1, .threads = 1},
     "local memory is left", "ld.local"},
    {{.body = "\tld.param.u64 \t%rd1, [k_param_1+8];", .grid = 1,
      .threads = 1},
     "parameter memory is left", "[k_param_1+8]"},
    // Half of a warp has gone another way, and ends or is at a barrier.
    {{.body = "\tsetp.gt.u32 \t%p1, %r0, 15;\n"
              "\t@%p1 bra \t$L__BB0_1;\n"
              "\tshfl.sync.bfly.b32 \t%r1|%p2, %r0, 1, 31, -1;\n"
              "$L__BB0_1:\n",
      .grid = 1, .threads = 32},
     "lane 16 is not at the shuffle that others are at", "shfl.sync"},
    {{.body = "\tsetp.eq.u32 \t%p1, %r0, 40;\n"
              "\t@%p1 bra \t$L__BB0_1;\n"
              "\tshfl.sync.bfly.b32 \t%r1|%p2, %r0, 1, 31, -1;\n"
              "$L__BB0_1:\n"
              "\tbar.sync \t0;",
      .grid = 1, .threads = 64, .seed = 5},
     "lane 8 is not at the shuffle that others are at", "shfl.sync"},
    // The warp has 8 lanes, and its mask 32.
    {{.body = "\tshfl.sync.bfly.b32 \t%r1|%p2, %r0, 1, 31, -1;",
      .grid = 1, .threads = 40},
     "are to shuffle, of 8", "shfl.sync"},
    {{.body = "\tsetp.eq.u32 \t%p1, %r0, 70;\n"
              "\t@%p1 bra \t$L__BB0_1;\n"
              "\tbar.sync \t0;\n"
              "$L__BB0_1:\n",
      .grid = 1, .threads = 96},
     "is at a barrier that others do not reach", "bar.sync"},
    // Two barriers with threads at each.
    {{.body = "\tsetp.eq.u32 \t%p1, %r0, 70;\n"
              "\t@%p1 bra \t$L__BB0_1;\n"
              "\tadd.s32 \t%r1, %r0, 1; bar.sync \t0;\n"
              "$L__BB0_1:\n"
              "\tbar.sync \t0; // of all",
      .grid = 1, .threads = 96},
     "is at a barrier that others do not reach", "// of all"},
    // Blocks wait until there are three, of two.
    {{.body = "\tatom.global.add.u32 \t%r1, [%rd12], 1;\n"
              "$L__BB0_1:\n"
              "\tld.volatile.global.u32 \t%r2, [%rd12];\n"
              "\tsetp.lt.u32 \t%p1, %r2, 3;\n"
              "\t@%p1 bra \t$L__BB0_1;",
      .grid = 2, .threads = 1},
     "k: blocks wait for one another", NULL},
    // What another block has written, and what is behind a wider store.
    {{.body = "\tmov.u32 \t%r1, %ctaid.x;\n"
              "\tsetp.eq.u32 \t%p1, %r1, 1;\n"
              "\t@%p1 bra \t$L__BB0_1;\n"
              "\tst.global.u32 \t[%rd12+4], %r0;\n"
              "\tret;\n"
              "$L__BB0_1:\n"
              "\tld.global.nc.u32 \t%r2, [%rd12+4];",
      .grid = 2, .threads = 1},
     "a constant is loaded that the launch has written", "ld.global.nc"},
    {{.body = "\tst.global.v4.u32 \t[%rd12+16], {%r0, %r0, %r0, %r0};\n"
              "\tld.global.nc.u8 \t%rs1, [%rd12+31];",
      .grid = 1, .threads = 1},
     "a constant is loaded that the launch has written", "ld.global.nc"},
    {{.body = "\tatom.global.add.u32 \t%r1, [%rd12], 1;\n"
              "\tld.global.nc.u8 \t%rs1, [%rd12+3];",
      .grid = 1, .threads = 1},
     "a constant is loaded that the launch has written", "ld.global.nc"},
    {{.body = "\twmma.load.a %r1, %r2;", .grid = 1, .threads = 1},
     "'wmma' is not known here", "wmma"},
    // What nobody writes now must not be taken for something like it.
    {{.body = "\tadd.sat.s32 \t%r1, %r2, %r3;", .grid = 1, .threads = 1},
     "is not known", "add.sat"},
    {{.body = "\tcvt.sat.f64.f32 \t%fd1, %f1;", .grid = 1, .threads = 1},
     "is not known", "cvt.sat"},
    {{.body = "\tcvt.rn.sat.f16.f32 \t%rs1, %f1;", .grid = 1, .threads = 1},
     "is not known", "cvt.rn.sat"},
    {{.body = "\tcvt.rn.sat.f32.s32 \t%f1, %r1;", .grid = 1, .threads = 1},
     "is not known", "cvt.rn.sat"},
    {{.body = "\t.shared .align 4 .b8 shared[64];\n"
              "\tld.volatile.shared.u32 \t%r1, [shared];",
      .grid = 1, .threads = 1},
     "is not known", "ld.volatile.shared"},
    {{.body = "\tsqrt.rz.f32 \t%f1, %f2;", .grid = 1, .threads = 1},
     "is not known", "sqrt.rz"},
    {{.body = "\tcvt.rz.f32.u32 \t%f1, %r2;", .grid = 1, .threads = 1},
     "is not known", "cvt.rz"},
    {{.body = "\tcvt.rz.f16x2.f32 \t%r1, %f1, %f2;", .grid = 1,
      .threads = 1},
     "is not known", "cvt.rz"},
    {{.body = "\tmin.NaN.f32 \t%f1, %f2, %f3;", .grid = 1, .threads = 1},
     "is not known", "min.NaN"},
    {{.body = "\tsetp.lt.f16 \t%p1, %rs1, %rs2;", .grid = 1, .threads = 1},
     "is not known", "setp.lt.f16"},
    {{.body = "\tatom.global.add.f64 \t%fd1, [%rd12], %fd2;", .grid = 1,
      .threads = 1},
     "is not known", "atom.global.add.f64"},
    {{.body = "\tatom.global.max.u32 \t%r1, [%rd12], 1;", .grid = 1,
      .threads = 1},
     "is not known", "atom.global.max"},
    {{.body = "\tbar.sync \t1;", .grid = 1, .threads = 1},
     "is not known", "bar.sync"},
    // One launch would see what the one before the one before has not done.
    {{.body = "\tgriddepcontrol.launch_dependents;\n"
              "\tgriddepcontrol.wait;",
      .grid = 1, .threads = 1},
     "the next launch may start before a wait", "launch_dependents"},
    {{.body = "", .grid = 1, .threads = 1, .programmatic = true},
     "a thread ends without a wait for the launch before", "ret;"},
    {{.body = "\tadd.s32 \t%r1, %r2, %q3;", .grid = 1, .threads = 1},
     "nothing has the name '%q3'", "%q3"},
    {{.body = "\tbra.uni \t$L__BB0_1;", .grid = 1, .threads = 1},
     "no label '$L__BB0_1'", "bra.uni"},
    {{.declared = ".texref unknown;\n", .body = "", .grid = 1, .threads = 1},
     "is not known here", ".texref"},
    {{.declared = ".const .align 1 .b8 t[2] = {1, 2, 3};\n", .body = "",
      .grid = 1, .threads = 1},
     "more numbers than there is room for", ".const"},
};
// clang-format on

// Runs it in a process of its own, and keeps what that says.
static int status_of(const Program *p, char *said, size_t room) {
    _Alignas(16) uint32_t memory[64] = {0};
    int end[2], status;
    ck_assert_int_eq(pipe(end), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(end[1], STDERR_FILENO);
        program_run(p, memory, memory);
        _exit(EXIT_SUCCESS);
    }
    close(end[1]);
    FILE *f = fdopen(end[0], "r");
    said[fread(said, 1, room - 1, f)] = '\0';
    fclose(f);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return status;
}

// The number of the line of a text in which something is first.
static int line_of(const char *text, const char *part) {
    const char *found = strstr(text, part);
    int line = 1;
    ck_assert_ptr_nonnull(found);
    for (; text < found; text++)
        line += *text == '\n';
    return line;
}

START_TEST(the_program_ends_with_a_sentence) {
    char said[1024], line[32], text[MAX_TEXT];
    const Refused *c = &cases[_i];
    ck_assert_int_ne(status_of(&c->program, said, sizeof said), 0);
    ck_assert_msg(strncmp(said, "ptx: ", 5) == 0 && strstr(said, c->says),
                  "it says: %s\nnot: %s", said, c->says);
    if (c->at == NULL)
        return;
    program_text(&c->program, text);
    snprintf(line, sizeof line, " line %d: ", line_of(text, c->at));
    ck_assert_msg(strstr(said, line), "it says: %s\nnot: %s", said, line);
}
END_TEST

Suite *refused_suite(void) {
    Suite *s = suite_create("refused");
    TCase *c = tcase_create("refused");
    tcase_set_timeout(c, 60);
    tcase_add_loop_test(c, the_program_ends_with_a_sentence, 0,
                        sizeof cases / sizeof cases[0]);
    suite_add_tcase(s, c);
    return s;
}
