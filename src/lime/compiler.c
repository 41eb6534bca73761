/* compiler.c - refuse compilers and machines for which limefs is not made, before all else */
#if __SIZEOF_POINTER__ < 8
#error "limefs needs a 64-bit machine: containers are larger than 4 GB"
#endif
#if defined __clang__ ? __clang_major__ < 14 : __GNUC__ < 10
#error "limefs needs gcc 10 or clang 14, or later: name one with CC=..."
#endif
