/* Helpers of kilter-sp's tests. Include this after cmocka.h. */
#ifndef SP_TEST_SUPPORT_H
#define SP_TEST_SUPPORT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "smps.h"
#include "support.h"

static inline sp_file text_file(const char *name, const char *text) {
    return (sp_file){name, text, strlen(text)};
}

static inline sp_problem *read_texts(const char *core, const char *time, const char *stoch) {
    sp_file files[] = {text_file("core", core), text_file("time", time), text_file("stoch", stoch)};
    sp_problem *problem = NULL;
    kilter_error error = {.text = ""};
    if (sp_problem_read(files, &problem, &error))
        fail_msg("%s", error.text);
    return problem;
}

static inline sp_file load(const char *folder, const char *name) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    sp_file file = {0};
    kilter_error error = {.text = ""};
    if (sp_file_load(path, &file, &error))
        fail_msg("%s", error.text);
    /* file->name points to a buffer of this function, so replace it by a name that stays valid */
    file.name = name;
    return file;
}

/* Return the problem in the files names[0 … 2] of the folder. If names[3] is not NULL, read the decision in
 * this file into *x. */
static inline sp_problem *load_problem(const char *folder, const char *const names[4], double **x) {
    sp_file file[4] = {{0}};
    kilter_error error = {.text = ""};
    sp_problem *problem = NULL;
    for (int i = 0; i < (names[3] ? 4 : 3); i++)
        file[i] = load(folder, names[i]);
    if (sp_problem_read(file, &problem, &error))
        fail_msg("%s", error.text);
    if (names[3] && sp_decision_read(problem, &file[3], x, &error))
        fail_msg("%s", error.text);
    for (int i = 0; i < 4; i++)
        sp_file_free(&file[i]);
    return problem;
}

static const char *const LANDS[] = {"lands/lands.cor", "lands/lands.tim", "lands/lands.sto",
                                    "lands/lands.at"};
static const char *const THREE_BLOCKS[] = {"lands/lands.cor", "lands/lands.tim", "lands/three-blocks.sto",
                                           "lands/three.at"};
static const char *const THREE_SCENARIOS[] = {"lands/lands.cor", "lands/lands.tim",
                                              "lands/three-scenarios.sto", "lands/three.at"};
static const char *const MILL[] = {"mill/mill.cor", "mill/mill.tim", "mill/mill.sto", NULL};
static const char *const AIRCRAFT[] = {"aircraft/aircraft.cor", "aircraft/aircraft.tim",
                                       "aircraft/aircraft.sto", "aircraft/aircraft.at"};

#endif
