/* Programs on this host, and the MPI that they belong to. */
#ifndef KL_PROGRAMS_H
#define KL_PROGRAMS_H

#include "keeper/keeper.h"

/* Find the program's file as execvp() does; malloc'd. NULL: there is none. */
char *kl_find_program(const char *word);
/* Return the MPI that the program's file needs. KL_LAUNCH_OWN: the MPI is not known. */
kl_launcher kl_launcher_of_file(const char *word);
/* Return the MPI of a launcher, as its --version says. KL_LAUNCH_OWN: the MPI is not known. */
kl_launcher kl_launcher_of_command(const char *command);
/* Return the path of a file that is installed with this command: beside it, in the libexec folder, or in the
 * folder KILTER_LIBEXEC; malloc'd. NULL: it is not there. */
char *kl_libexec_file(const char *name);

#endif
