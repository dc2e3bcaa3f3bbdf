/* The folder of a session, with the socket in it; and those of other sessions. */
#ifndef PLACE_H
#define PLACE_H

#include "../common/types.h"

bool nonce_is_valid(const char *nonce);
int place_make(const char *nonce);
void place_serve(int listener);
void place_remove(void);
bool place_exists(void);
int place_connect(const char *nonce);
void place_visit_others(i64 until, bool (*meet)(int connection));

#endif
