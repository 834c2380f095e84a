/* Setup and teardown for tests with cmocka: make a temporary folder, and the name of a record in it. */
#ifndef KL_RECORD_TEST_HELPER_H
#define KL_RECORD_TEST_HELPER_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sys/sys.h"

typedef struct place {
    char *folder, *file;
} place;

static inline int make_place(void **state) {
    place *p = calloc(1, sizeof *p);
    if (!p || kl_private_dir(&p->folder, NULL) != KILTER_OK)
        return -1;
    p->file = kl_text("%s/a.kilter", p->folder);
    *state = p;
    return p->file ? 0 : -1;
}

/* Remove the record and its logs. Fail if there are other files. A test may have moved the record to the file
 * *.moved. */
static inline int remove_place(void **state) {
    place *p = *state;
    static const char *const endings[] = {"", "-wal", "-shm", "-journal", ".moved"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        char *name = kl_text("%s%s", p->file, endings[i]);
        if (name)
            unlink(name);
        free(name);
    }
    int failed = rmdir(p->folder);
    free(p->folder);
    free(p->file);
    free(p);
    return failed;
}

#endif
