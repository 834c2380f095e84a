/* Show kilter top on a terminal, with ncurses. */
#include "top.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cmd.h"

#ifdef KL_WITH_CURSES

#include <ncurses.h>

enum { CTRL_L = 'L' & 0x1f };

static int key_of(int code) {
    switch (code) {
    case KEY_UP:
        return KL_KEY_UP;
    case KEY_DOWN:
        return KL_KEY_DOWN;
    case '\t':
    case KEY_RIGHT:
        return KL_KEY_NEXT;
    case '\n':
    case '\r':
    case KEY_ENTER:
        return KL_KEY_ENTER;
    case 27:
        return KL_KEY_LEAVE;
    default:
        return code;
    }
}

static void paint(const kl_top *top, kl_top_line *lines) {
    static const attr_t looks[] = {[KL_TOP_PLAIN] = A_NORMAL,
                                   [KL_TOP_TITLE] = A_BOLD,
                                   [KL_TOP_CHOSEN] = A_REVERSE,
                                   [KL_TOP_WARNING] = A_STANDOUT};
    size_t count = kl_top_screen(top, COLS > 0 ? (size_t)COLS : 80, LINES > 0 ? (size_t)LINES : 24, lines);
    erase();
    for (size_t i = 0; i < count; i++) {
        attrset(looks[lines[i].look]);
        mvaddstr((int)i, 0, lines[i].text);
    }
    attrset(A_NORMAL);
    refresh();
}

static kilter_status follow(kl_top *top, const char *file, kl_top_line *lines, kilter_error *error) {
    for (;;) {
        kilter_status status = kl_top_update(top, file, error);
        if (status != KILTER_OK)
            return status;
        paint(top, lines);
        /* after a key, update the states of runs at once */
        int code = getch();
        if (code == CTRL_L)
            clear(); /* Paint the whole screen again, because another program may have written on the
                      * terminal. */
        if (code == ERR || code == KEY_RESIZE || code == CTRL_L)
            continue;
        kl_top_action action = kl_top_press(top, key_of(code));
        if (action == KL_TOP_QUIT)
            return KILTER_OK;
        kl_top_do(top, action);
    }
}

int kl_top_show(const char *file, double interval_s) {
    kl_top top = {0};
    kilter_error error;
    kl_top_line *lines = calloc(KL_TOP_ROWS_MOST, sizeof *lines);
    kilter_status status = lines ? kl_top_update(&top, file, &error)
                                 : kl_fail(&error, KILTER_ERR_MEMORY, "showing runs: memory ran out");
    setlocale(LC_CTYPE, "");
    SCREEN *screen = status == KILTER_OK ? newterm(NULL, stdout, stdin) : NULL;
    if (status == KILTER_OK && !screen)
        status = kl_fail(&error, KILTER_ERR_USAGE, "showing runs: this terminal is not known; set TERM");
    if (screen) {
        cbreak();
        noecho();
        curs_set(0);
        keypad(stdscr, TRUE);
        set_escdelay(25);
        timeout((int)(1e3 * interval_s));
        status = follow(&top, file, lines, &error);
        endwin();
        delscreen(screen);
    }
    kl_top_free(&top);
    free(lines);
    return status == KILTER_OK ? EXIT_SUCCESS : kilter_exit("kilter", &error);
}

#else

int kl_top_show(const char *file, double interval_s) {
    (void)file;
    (void)interval_s;
    fprintf(stderr,
            "kilter top: this Kilter was built without ncurses; use kilter tune, or build it again with "
            "libncurses-dev\n");
    return KL_EXIT_USER;
}

#endif
