/* The agent's connection: the frames that come over it, and the keeper's, composed out of its state. */
#ifndef CONNECTION_H
#define CONNECTION_H

#include "protocol.h"

extern const struct frame_rules agent_rules;

void connection_begin(i64 now);
void connection_adopt(int fd, const struct frame *attach, i64 now);
bool connection_exists(void);
i64 connection_heard_at(void);
void connection_watch(void);
void connection_serve(i64 now);
void connection_tell(void);

#endif
