/* Marked loops are branches of if statements, without braces around them. */
#include "common.h"

static int u[30];

int main(void) {
    for (int t = 0; t < 9; t++)
        if (u[t] % 2)
#pragma kilter loop
            for (int i = 0; i < 30; i++)
                u[i] += i;
        else if (u[t] > 9)
            u[t]--;
        else
#pragma kilter loop
            for (int i = 0; i < 30; i++)
                u[i] += 2 * i + 1;
    for (int i = 0; i < 30; i++)
        printf("%d\n", u[i]);
}
