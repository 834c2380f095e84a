/* Functions of the C library read and write distributed arrays. */
#include "common.h"

static char text[27], copy[27];
static int number[20], twice[20];

int main(void) {
#pragma kilter loop
    for (int i = 0; i < 26; i++)
        text[i] = (char)('a' + i);
    printf("%s %zu\n", text, strlen(text));
    strcpy(text, "zyxwvutsrqponmlkjihgfedcba");
#pragma kilter loop
    for (int i = 0; i < 26; i++)
        copy[i] = text[i];
    puts(copy);
#pragma kilter loop
    for (int i = 0; i < 20; i++)
        number[i] = i;
    sscanf("55", "%d", &number[3]);
#pragma kilter loop
    for (int i = 0; i < 20; i++)
        twice[i] = 2 * number[i];
    printf("%d %d\n", twice[3], twice[4]);
}
