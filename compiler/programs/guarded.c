/* Conditions make iterations skip elements that do not exist. */
#include "common.h"

static struct { int before, row[20][4], after; } part;
static int mask[21], row[20], next;

int main(void) {
    for (int i = 0; i < 19; i++)
        mask[i] = i % 3 > 0;
#pragma kilter loop
    for (int i = 0; i < 21; i++)
        if (mask[i])
            row[i + 1] = i;
    next = 7;
#pragma kilter loop
    for (int i = 0; i < 20; i++)
        if (mask[i])
            row[i] += part.row[i - 1][2] + 1;
    part.after = 3;
    for (int i = 0; i < 20; i++)
        printf("%d %d\n", row[i], next);
}
