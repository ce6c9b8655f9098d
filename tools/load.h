// Load: detects other programs that ran while this one measured times.
#ifndef TOOLS_LOAD_H
#define TOOLS_LOAD_H

// Seconds of processor time at a moment: of the whole machine, and of this
// program with the children that it has waited for.
typedef struct {
    double moment, machine, own;
} Load;

Load load_begin(void);

// Prints why times measured since then are noise: other programs used more than
// a tenth of the cores, or the times differ by more than a tenth.  `differ` is
// the width of their range as a share of the median.
void load_report(const Load *begin, double differ);

#endif
