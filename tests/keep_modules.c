/* Prevent modules from being unloaded. This library is preloaded into ranks of tests under the address
 * sanitizer. Open MPI
 * unloads its modules at the end. After that the sanitizer can neither name a module's functions nor suppress
 * its leaks. */
__attribute__((visibility("default"))) int dlclose(void *handle);

int dlclose(void *handle) {
    (void)handle;
    return 0;
}
