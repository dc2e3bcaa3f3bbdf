/* stdin, stdout and stderr between the command's pipes and the connection. */
#ifndef STREAMS_H
#define STREAMS_H

#include "../common/types.h"

enum { STDOUT, STDERR, OUTPUTS };

void streams_open(int in, int out, int err);
void streams_watch(void);
void streams_serve(void);
bool stdin_accept(u64 offset, const u8 *bytes, size_t length);
bool stdin_end(u64 length);
u64 stdin_taken(void);
bool stdin_is_closed(void);
bool output_acknowledge(const u64 received[OUTPUTS]);
void output_rewind(void);
size_t output_next(int *stream, u64 *offset, u8 *to);
u64 output_length(int stream);
bool output_was_held(void);
bool streams_settle(i64 now, i64 *wake);

#endif
