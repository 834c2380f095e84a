/* Find programs on this host, and the MPI for which they were built. */
#ifndef KL_PROGRAMS_H
#define KL_PROGRAMS_H

#include "keeper/keeper.h"

/* Return the path of the program's file, found as execvp() does; malloc'd. NULL: there is no such program. */
char *kl_find_program(const char *word);
/* Return the MPI whose libraries the program's file needs. KL_LAUNCH_OWN: the MPI is not known. */
kl_launcher kl_launcher_of_file(const char *word);
/* Return the MPI to which a launcher belongs, from the output of its --version. KL_LAUNCH_OWN: the MPI is
 * not known. */
kl_launcher kl_launcher_of_command(const char *command);
/* Return the path of a file that is installed with this command; malloc'd. It is in the command's folder,
 * in the libexec folder, or in the folder KILTER_LIBEXEC. NULL: not found. */
char *kl_libexec_file(const char *name);

#endif
