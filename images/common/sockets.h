/* Unix sockets in a folder: where folders may be, connecting, listening, and who is at the other end. */
#ifndef SOCKETS_H
#define SOCKETS_H

#include "types.h"

enum { PLACES = 3 };

const char *place_root(int number);
int socket_connect(int folder);
int socket_listen(int folder, int backlog);
void socket_remove(int folder);
bool peer_is_ours(int fd);
bool peers_are_visible(void);

#endif
