// Curves: a chart for each metric, below one another, as one <svg> element.
// A run has a colour and a split has a dash.  A series with more points than
// the chart has columns becomes the least and the most of each column (a
// min/max envelope), so that no spike is lost and the file stays small.
#include "base/source.h"
#include "tools/plot/plot.h"

#include <math.h>
#include <string.h>

enum {
    WIDTH = 760,
    LEFT = 70,
    RIGHT = 16,
    HEIGHT = 170, // of a chart
    ABOVE = 30,
    BELOW = 30, // of all charts: the axis
    KEY = 18,   // a line of the legend
    LETTER = 7, // the widest letter of the legend
    TICKS = 5
};

// Middle tones, visible on white and on black.
static const char *const colour[] = {
    "#3b82c4", "#d9822b", "#3a9d6b", "#a565c0", "#cf4f56", "#2a9aa8",
    "#b59a1d", "#c8609b", "#7c8ae0", "#8a6f52", "#5aa02c", "#7b8794"};
enum { NUM_COLOURS = sizeof colour / sizeof colour[0] };

static const struct {
    const char *split, *dash;
    double width;
} styles[] = {{"step", "", 0.8},
              {"train", "5 3", 1.6},
              {"evaluated on train", "2 3", 1.6},
              {"validation", "8 3 2 3", 1.8},
              {"test", "", 2.2},
              {"", "", 2.2}};
enum { NUM_STYLES = sizeof styles / sizeof styles[0] };

// The ranges of a chart, and its place in the drawing.
typedef struct {
    double x0, x1, y0, y1;
    double left, top, width, height;
    bool powers; // x0 and x1 are logarithms to base 2
} Frame;

// ---- text ----

// U+FFFE and U+FFFF.
static bool is_no_character(const char *s, size_t length) {
    return length == 3 && (unsigned char)s[0] == 0xef &&
           (unsigned char)s[1] == 0xbf && (unsigned char)s[2] >= 0xbe;
}

// XML has no control characters except these, no invalid UTF-8, and not every
// character.
void xml_add(Text *t, const char *s) {
    for (size_t left = strlen(s), length; left > 0;
         s += length, left -= length) {
        unsigned char c = (unsigned char)*s;
        length = utf8_length(s, left);
        if (c == '&')
            text_add(t, "&amp;");
        else if (c == '<')
            text_add(t, "&lt;");
        else if (c == '>')
            text_add(t, "&gt;");
        else if (c == '"')
            text_add(t, "&quot;");
        else if (c < 0x20 || c == 0x7f || (c >= 0x80 && length == 1) ||
                 is_no_character(s, length))
            text_add(t, "?");
        else
            text_bytes(t, s, length);
    }
}

static void label_add(Text *t, double x, double y, const char *anchor,
                      const char *s) {
    text_add(t,
             "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" "
             "fill=\"#7d8590\">",
             x, y, anchor);
    xml_add(t, s);
    text_add(t, "</text>\n");
}

static void rule_add(Text *t, double x1, double y1, double x2, double y2) {
    text_add(t,
             "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" "
             "stroke=\"#7d8590\" stroke-opacity=\"0.25\"/>\n",
             x1, y1, x2, y2);
}

// ---- scales ----

static void range_widen(double *low, double *high, double v) {
    if (!isfinite(v))
        return;
    *low = fmin(*low, v);
    *high = fmax(*high, v);
}

// Widens the range of a single value; an empty range becomes 0 to 1.
static void range_settle(double *low, double *high) {
    if (*low > *high)
        *low = 0, *high = 1;
    double room = fmax(fabs(*low), 1e-30) * 0.1;
    if (*high - *low < 1e-9 * fabs(*high) || *high == *low)
        *low -= room, *high += room;
}

// 1, 2 or 5 times a power of ten, so that a range has about TICKS of them.
static double tick_of(double low, double high) {
    double rough = (high - low) / TICKS;
    double power = pow(10, floor(log10(rough)));
    double part = rough / power;
    return power * (part < 1.5 ? 1 : part < 3.5 ? 2 : part < 7.5 ? 5 : 10);
}

static double axis_x(const Frame *f, double x) {
    return f->left + f->width * (x - f->x0) / (f->x1 - f->x0);
}

static double at_x(const Frame *f, double x) {
    return axis_x(f, f->powers ? log2(x) : x);
}

static double at_y(const Frame *f, double y) {
    return f->top + f->height * (1 - (y - f->y0) / (f->y1 - f->y0));
}

// ---- choice of series ----

// The learning rate is the same in every split, so one series is enough.
static bool one_is_enough(const char *metric) {
    return strcmp(metric, "lr") == 0 || strcmp(metric, "loss_scale") == 0;
}

static const PlotSeries *series_drawn(const PlotRun *r, const char *metric,
                                      int style) {
    const PlotSeries *s = run_series(r, metric, styles[style].split);
    for (int i = 0; s != NULL && one_is_enough(metric) && i < style; i++)
        if (run_series(r, metric, styles[i].split) != NULL)
            return NULL;
    return s;
}

static Frame frame_of(const Curves *c, const char *metric) {
    Frame f = {INFINITY, -INFINITY, INFINITY, -INFINITY, 0, 0, 0, 0, false};
    for (int r = 0; r < c->num_runs; r++)
        for (int k = 0; k < NUM_STYLES; k++) {
            const PlotSeries *s = series_drawn(&c->run[r], metric, k);
            for (int i = 0; s != NULL && i < s->count; i++)
                range_widen(&f.y0, &f.y1, s->point[i].y);
        }
    for (int r = 0; r < c->num_runs; r++)
        for (int k = 0; k < c->run[r].count; k++)
            for (int i = 0; i < c->run[r].series[k].count; i++)
                range_widen(&f.x0, &f.x1, c->run[r].series[k].point[i].x);
    if (c->powers && f.x0 > 0)
        f.x0 = log2(f.x0), f.x1 = log2(f.x1), f.powers = true;
    range_settle(&f.x0, &f.x1);
    range_settle(&f.y0, &f.y1);
    return f;
}

// ---- lines ----

// The pen of a path: whether it is down, and how many points it has drawn.
typedef struct {
    Text *t;
    bool down;
    int count;
    double x, y; // of the last point
} Pen;

static void pen_to(Pen *p, double x, double y) {
    text_add(p->t, "%s%.1f %.1f", p->down ? "L" : "M", x, y);
    p->down = true;
    p->count++;
    p->x = x;
    p->y = y;
}

// Draws points first .. end-1, which share a column: the least and the most of
// them, in their order, and lifts the pen at a gap.
static void column_draw(Pen *p, const Frame *f, const PlotSeries *s, int first,
                        int end) {
    int low = first, high = first;
    for (int i = first + 1; i < end; i++) {
        low = s->point[i].y < s->point[low].y ? i : low;
        high = s->point[i].y > s->point[high].y ? i : high;
    }
    int early = low < high ? low : high, late = low < high ? high : low;
    pen_to(p, at_x(f, s->point[early].x), at_y(f, s->point[early].y));
    if (late != early)
        pen_to(p, at_x(f, s->point[late].x), at_y(f, s->point[late].y));
}

// The end of the points from `first` on that share its column of the chart.
static int column_end(const Frame *f, const PlotSeries *s, int first,
                      bool dense) {
    int end = first + 1;
    int column = (int)floor(at_x(f, s->point[first].x));
    while (dense && end < s->count && !isnan(s->point[end].y) &&
           (int)floor(at_x(f, s->point[end].x)) == column)
        end++;
    return end;
}

static void series_path(Pen *p, const Frame *f, const PlotSeries *s) {
    bool dense = s->count > 2 * f->width;
    for (int i = 0, end; i < s->count; i = end) {
        end = i + 1;
        if (isnan(s->point[i].y)) {
            p->down = false;
            continue;
        }
        end = column_end(f, s, i, dense);
        column_draw(p, f, s, i, end);
    }
}

static void series_add(Text *t, const Frame *f, const PlotRun *r,
                       const PlotSeries *s, int run, int style) {
    Text d = text_new(t->arena);
    Pen pen = {.t = &d};
    style = one_is_enough(s->metric) ? NUM_STYLES - 1 : style;
    series_path(&pen, f, s);
    if (pen.count == 0)
        return;
    text_add(t,
             "<g fill=\"none\" stroke=\"%s\" stroke-width=\"%.1f\" "
             "stroke-opacity=\"%s\"><title>",
             colour[run % NUM_COLOURS], styles[style].width,
             style == 0 ? "0.45" : "1");
    xml_add(t, r->name);
    text_add(t, "%s%s</title><path d=\"%s\"", *s->split ? ", " : "", s->split,
             text_string(&d));
    if (*styles[style].dash)
        text_add(t, " stroke-dasharray=\"%s\"", styles[style].dash);
    text_add(t, "/>");
    if (pen.count == 1)
        text_add(t, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\"/>", pen.x,
                 pen.y);
    text_add(t, "</g>\n");
}

// ---- charts ----

static void ticks_y(Text *t, const Frame *f) {
    char label[32];
    double tick = tick_of(f->y0, f->y1);
    for (double k = ceil(f->y0 / tick); k * tick <= f->y1; k++) {
        double y = at_y(f, k * tick);
        rule_add(t, f->left, y, f->left + f->width, y);
        snprintf(label, sizeof label, "%.6g", k * tick);
        label_add(t, f->left - 6, y + 4, "end", label);
    }
}

static void ticks_x(Text *t, const Frame *f, bool labels) {
    char label[32];
    double tick = tick_of(f->x0, f->x1);
    if (f->powers)
        tick = ceil(tick);
    for (double k = ceil(f->x0 / tick); k * tick <= f->x1; k++) {
        double x = axis_x(f, k * tick);
        rule_add(t, x, f->top, x, f->top + f->height);
        snprintf(label, sizeof label, "%.6g",
                 f->powers ? exp2(k * tick) : k * tick);
        if (labels)
            label_add(t, x, f->top + f->height + 15, "middle", label);
    }
}

static const char *metric_title(const char *metric) {
    return strcmp(metric, "lr") == 0 ? "learning rate" : metric;
}

static void chart_add(Text *t, const Curves *c, int i, double top,
                      double width) {
    const char *metric = c->metric[i];
    Frame f = frame_of(c, metric);
    bool last = i == c->num_metrics - 1;
    f.left = LEFT;
    f.top = top;
    f.width = width - LEFT - RIGHT;
    f.height = HEIGHT;
    label_add(t, LEFT, top - 8, "start", metric_title(metric));
    ticks_y(t, &f);
    ticks_x(t, &f, last);
    for (int k = 0; k < NUM_STYLES; k++)
        for (int r = 0; r < c->num_runs; r++) {
            const PlotSeries *s = series_drawn(&c->run[r], metric, k);
            if (s != NULL)
                series_add(t, &f, &c->run[r], s, r, k);
        }
    if (last)
        label_add(t, LEFT + f.width / 2, top + HEIGHT + 29, "middle",
                  strcmp(c->x, "time") == 0 ? "time (s)" : c->x);
}

// ---- the legend ----

static void key_add(Text *t, double x, double y, const char *stroke, int style,
                    const char *name) {
    text_add(t,
             "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" "
             "stroke=\"%s\" stroke-width=\"%.1f\" stroke-dasharray=\"%s\"/>\n",
             x, y - 4, x + 24, y - 4, stroke, styles[style].width,
             styles[style].dash);
    label_add(t, x + 30, y, "start", name);
}

// Whether a curve of this split is drawn.
static bool style_drawn(const Curves *c, int style) {
    for (int i = 0; i < c->num_metrics; i++)
        for (int r = 0; r < c->num_runs; r++)
            if (!one_is_enough(c->metric[i]) &&
                series_drawn(&c->run[r], c->metric[i], style) != NULL)
                return true;
    return false;
}

// Adds a line for each run, and one for the splits; returns the lower edge.
static double legend_add(Text *t, const Curves *c) {
    double y = KEY, x = LEFT;
    for (int r = 0; r < c->num_runs; r++, y += KEY)
        key_add(t, LEFT, y, colour[r % NUM_COLOURS], NUM_STYLES - 1,
                c->run[r].name);
    for (int k = 0; k < NUM_STYLES; k++)
        if (*styles[k].split && style_drawn(c, k)) {
            key_add(t, x, y, "#7d8590", k, styles[k].split);
            x += 54 + LETTER * (double)strlen(styles[k].split);
        }
    return y;
}

// The drawing is wide enough for the longest name.
static double width_of(const Curves *c) {
    double width = WIDTH;
    for (int r = 0; r < c->num_runs; r++)
        width = fmax(width, LEFT + 30 + RIGHT +
                                LETTER * (double)strlen(c->run[r].name));
    return width;
}

void curves_add(Text *t, const Curves *c) {
    Text body = text_new(t->arena);
    double width = width_of(c), y = legend_add(&body, c);
    for (int i = 0; i < c->num_metrics; i++, y += HEIGHT + ABOVE)
        chart_add(&body, c, i, y + ABOVE, width);
    text_add(t,
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f "
             "%.0f\" width=\"%.0f\" height=\"%.0f\" font-family=\"system-ui, "
             "sans-serif\" font-size=\"12\" role=\"img\">\n<title>",
             width, y + BELOW + 6, width, y + BELOW + 6);
    for (int i = 0; i < c->num_metrics; i++) {
        text_add(t, i ? ", " : "");
        xml_add(t, metric_title(c->metric[i]));
    }
    text_add(t, " by %s</title>\n", c->x);
    text_bytes(t, text_string(&body), body.length);
    text_add(t, "</svg>\n");
}
