#include <string.h>

#include "control/talk.h"

bool kl_control_address(const char *name, struct sockaddr_un *address, socklen_t *size) {
    size_t bytes = strlen(name);
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    *size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + bytes);
    if (*name != '@' || bytes < 2 || bytes > sizeof address->sun_path)
        return false;
    /* the name of an abstract socket is stored after a NUL byte */
    memcpy(address->sun_path + 1, name + 1, bytes - 1);
    return true;
}
