/* Private to the folder sys: small files in /proc and /sys, and the control groups of this process. `root` is
 * put before these paths. It is normally ""; tests set it to a folder with files of their own. */
#ifndef KL_SYS_GROUPS_H
#define KL_SYS_GROUPS_H

#include "base/base.h"

enum { KL_TEXT_BYTES = 1 << 14, KL_GROUP_BYTES = 2 * 4096 };

/* Read the beginning of a file. The text is "" if the file cannot be read. */
void kl_read_below(const char *root, const char *folder, const char *name, char text[KL_TEXT_BYTES]);
/* Return the text that follows `name` in the line that begins with `name`. NULL: there is no such line. */
const char *kl_text_after(const char *text, const char *name);
/* Return the number that follows `name` in the line that begins with `name`; 0: there is no such line. */
uint64_t kl_number_after(const char *text, const char *name);

/* A control group in which a controller, such as the one for memory, sets limits. */
typedef struct kl_group {
    const char *root;
    bool version_2;
    char folder[KL_GROUP_BYTES];
} kl_group;

/* Call a function for the group of this process, and for all groups above this group. */
void kl_groups_visit(const char *root, const char *controller,
                     void (*visit)(void *context, const kl_group *group), void *context);

#endif
