-module(client).
-export([request/2, add/3, subscribe/1, publish/2, work/2]).

request(Server, Request) ->
    Ref = make_ref(),
    Server ! {request, self(), Ref, Request},
    receive
        {reply, Ref, Response} -> {ok, Response}
    after 5000 ->
        {error, timeout}
    end.

add(Server, A, B) -> request(Server, {add, A, B}).

subscribe(Hub) -> Hub ! {subscribe, self()}, ok.

publish(Hub, Message) -> Hub ! {publish, Message}, ok.

work(Worker, Data) ->
    Worker ! {work, self(), Data},
    receive
        {result, Result} -> {ok, Result}
    after 5000 ->
        {error, timeout}
    end.
