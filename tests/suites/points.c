// Points: what Check is told of where a test is.
//
// Each assertion that holds sends a message to the process that waits for the
// test, so that it can say after which of them a test crashed.  A loop over the
// elements of a tensor sends one for each, and with sanitizers nearly all of
// its time is spent on that.  So a point is told of once, until another takes
// its place: of a loop, the first time.
#include <check.h>

void __real__mark_point(const char *file, int line);
void __wrap__mark_point(const char *file, int line);

void __wrap__mark_point(const char *file, int line) {
    enum { PLACES = 16 };
    static struct {
        const char *file;
        int line;
    } told[PLACES];
    unsigned at = (unsigned)line % PLACES;
    if (told[at].file == file && told[at].line == line)
        return;
    told[at].file = file;
    told[at].line = line;
    __real__mark_point(file, line);
}
