/* The progress line. On a terminal, each update overwrites the line. In a file or a pipe, each update prints
 * a new line. */
#include <math.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "farm/farm_private.h"

static const double FIRST_S = 2; /* a run that is shorter than this many seconds shows no progress line */
static const double TERMINAL_S = 0.5; /* seconds between two updates of the line on a terminal */
static const double LOG_S = 10;       /* smallest number of seconds between two lines in a file or a pipe */
/* in a file or a pipe, the time between two lines is at least this part of the run's time so far */
static const double LOG_PART = 0.05;
static const int COLUMNS = 80, NO_TERMINAL = 0;

static int columns_of(const kl_screen *s) {
    struct winsize size;
    if (!s->terminal)
        return NO_TERMINAL;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : COLUMNS;
}

static void erase(kl_screen *s) {
    if (s->drawn)
        fputs("\r\033[K", stderr);
    s->drawn = false;
}

static void draw(kilter_farm *f) {
    kl_screen *s = &f->screen;
    kl_progress progress;
    char text[480];
    kl_master_progress(f->master, &s->telling, &progress);
    kl_progress_print(&progress, columns_of(s), text, sizeof text);
    if (s->terminal)
        fprintf(stderr, "\r%s\033[K", text);
    else
        fprintf(stderr, "%s: %s\n", f->settings.name, text);
    s->drawn = s->terminal;
}

void kl_farm_begin_progress(kilter_farm *f) {
    kl_screen *s = &f->screen;
    pthread_mutex_lock(&s->lock);
    s->terminal = isatty(STDERR_FILENO) == 1;
    s->began_s = kl_now_s(&f->clock);
    s->next_s = f->settings.options.progress ? s->began_s + (s->terminal ? FIRST_S : LOG_S) : HUGE_VAL;
    pthread_mutex_unlock(&s->lock);
}

/* Return the seconds until the progress line must be shown next; −1: it is not shown. If the program is
 * writing its own output now, return the seconds after which to try again. */
double kl_farm_progress_due_s(kilter_farm *f) {
    if (!f->settings.options.progress)
        return -1;
    if (pthread_mutex_trylock(&f->screen.lock) != 0)
        return TERMINAL_S;
    double next_s = f->screen.next_s;
    pthread_mutex_unlock(&f->screen.lock);
    return next_s < HUGE_VAL ? fmax(next_s - kl_now_s(&f->clock), 0) : -1;
}

static void show(kilter_farm *f, double now_s) {
    kl_screen *s = &f->screen;
    draw(f);
    s->next_s = now_s + (s->terminal ? TERMINAL_S : fmax(LOG_S, LOG_PART * (now_s - s->began_s)));
}

void kl_farm_show_progress(kilter_farm *f, bool running) {
    kl_screen *s = &f->screen;
    double now_s = kl_now_s(&f->clock);
    if (!f->settings.options.progress)
        return;
    if (!running)
        pthread_mutex_lock(&s->lock);
    else if (pthread_mutex_trylock(&s->lock) != 0)
        return;
    if (!running)
        erase(s);
    else if (now_s >= s->next_s)
        show(f, now_s);
    pthread_mutex_unlock(&s->lock);
}

void kl_farm_tell(kilter_farm *f, const kl_telling *telling) {
    pthread_mutex_lock(&f->screen.lock);
    f->screen.telling = *telling;
    pthread_mutex_unlock(&f->screen.lock);
}

void kl_farm_take_screen(kilter_farm *f, bool mine) {
    if (mine) {
        pthread_mutex_lock(&f->screen.lock);
        erase(&f->screen);
    } else {
        pthread_mutex_unlock(&f->screen.lock);
    }
}
