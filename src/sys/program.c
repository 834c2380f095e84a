/* How this process was started: its arguments and its program file. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/sys.h"

static const char PLAIN[] =
    /* characters that a shell takes without quotes */
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./=:,+@%-";

static void put_word(FILE *out, const char *word) {
    if (*word && word[strspn(word, PLAIN)] == '\0') {
        fputs(word, out);
        return;
    }
    fputc('\'', out);
    for (; *word; word++)
        if (*word == '\'')
            fputs("'\\''", out);
        else
            fputc(*word, out);
    fputc('\'', out);
}

char *kl_words_text(size_t count, char *const *words) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    for (size_t i = 0; out && i < count; i++) {
        if (i > 0)
            fputc(' ', out);
        put_word(out, words[i]);
    }
    bool good = out && !ferror(out);
    good &= out && fclose(out) == 0;
    if (good)
        return text;
    free(text);
    return NULL;
}

/* /proc/self/cmdline holds the words one after the other, each ended by a 0 byte. */
char *kl_own_words(int first) {
    FILE *in = fopen("/proc/self/cmdline", "re");
    char *word = NULL, *text = NULL;
    size_t room = 0, size = 0;
    FILE *out = in ? open_memstream(&text, &size) : NULL;
    for (int i = 0; out && getdelim(&word, &room, '\0', in) > 0; i++) {
        if (i > first)
            fputc(' ', out);
        if (i >= first)
            put_word(out, word);
    }
    free(word);
    if (out)
        fclose(out);
    if (in)
        fclose(in);
    return text;
}

enum { WORDS_MOST = 4096 };

/* Read the process's command line into `words`, with NULL after the last word. Return the number of words. */
static size_t read_words(char *words[WORDS_MOST + 1]) {
    FILE *in = fopen("/proc/self/cmdline", "re");
    size_t count = 0, room = 0;
    while (in && count < WORDS_MOST) {
        words[count] = NULL;
        if (getdelim(&words[count], &room, '\0', in) <= 0)
            break;
        count++;
        room = 0;
    }
    if (in)
        fclose(in);
    free(words[count]);
    words[count] = NULL;
    return count;
}

/* Write `input` to a file in memory, and make this file the standard input. The file has no name, so no other
 * process can open it. */
static bool put_at_standard_input(const void *input, size_t size) {
    int file = memfd_create("input", 0);
    bool put = file >= 0 && write(file, input, size) == (ssize_t)size && lseek(file, 0, SEEK_SET) == 0 &&
               dup2(file, STDIN_FILENO) == STDIN_FILENO;
    if (file > STDIN_FILENO)
        close(file);
    return put;
}

kilter_status kl_begin_anew(const void *input, size_t size, kilter_error *error) {
    static char *words[WORDS_MOST + 1];
    sigset_t none;
    sigemptyset(&none);
    if (size > 0 && !put_at_standard_input(input, size))
        return kl_fail(error, KILTER_ERR_SYSTEM, "restarting the program: %s", strerror(errno));
    size_t count = read_words(words);
    if (count == 0 || count == WORDS_MOST)
        return kl_fail(error, KILTER_ERR_SYSTEM,
                       "restarting the program: its command line cannot be read, or has %d words",
                       WORDS_MOST);
    close_range(STDERR_FILENO + 1, UINT_MAX,
                CLOSE_RANGE_CLOEXEC); /* on a kernel without close_range(), files other than the standard
                                         streams stay open */
    pthread_sigmask(SIG_SETMASK, &none, NULL);
    execv("/proc/self/exe", words);
    return kl_fail(error, KILTER_ERR_SYSTEM, "restarting the program: %s", strerror(errno));
}

/* Find the build id in the notes of an ELF file. Each note has three numbers, a name and a content, each
 * aligned to 4 bytes. */
static void find_build_id(const uint8_t *notes, size_t size, char *build) {
    static const uint32_t GNU_BUILD_ID = 3;
    while (size >= 12) {
        uint32_t head[3];
        memcpy(head, notes, sizeof head);
        size_t name = 12 + (((size_t)head[0] + 3) & ~(size_t)3),
               whole = name + (((size_t)head[1] + 3) & ~(size_t)3);
        if (whole > size)
            return;
        if (head[2] == GNU_BUILD_ID && head[0] == 4 && memcmp(notes + 12, "GNU", 4) == 0)
            snprintf(build, KL_BUILD_BYTES, "%016llx", (unsigned long long)kl_hash(notes + name, head[1], 0));
        notes += whole;
        size -= whole;
    }
}

/* Read the notes of the first object in the list, which is the program itself. */
static int read_notes(struct dl_phdr_info *object, size_t size, void *build) {
    (void)size;
    for (int i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_NOTE)
            find_build_id((const uint8_t *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr),
                          object->dlpi_phdr[i].p_memsz, build);
    return 1;
}

static void hash_own_file(char *build) {
    struct stat info;
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    bool found = fd >= 0 && fstat(fd, &info) == 0 && info.st_size > 0;
    void *bytes = found ? mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    if (bytes != MAP_FAILED) {
        snprintf(build, KL_BUILD_BYTES, "%016llx",
                 (unsigned long long)kl_hash(bytes, (size_t)info.st_size, 0));
        munmap(bytes, (size_t)info.st_size);
    }
    if (fd >= 0)
        close(fd);
}

void kl_own_build(char build[KL_BUILD_BYTES]) {
    build[0] = '\0';
    dl_iterate_phdr(read_notes, build);
    if (!build[0])
        hash_own_file(build);
}
