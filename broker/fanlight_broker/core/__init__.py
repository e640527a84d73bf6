"""The broker itself: clients, subscriptions, routing. No socket, no protocol, no clock: `now` is an argument."""
