"""What to try beside the demo: commands that show its messages by content, to be copied into another terminal."""

from fanlight_bench.demo.ports import USUAL

WHERE = "close > 500 AND volume > 1000000"
FIELDS = '{"close": 172.26, "volume": 25555934}'


def hints(url: str, http_url: str, mqtt_port: int) -> list[str]:
    """Lines for people. Addresses are in the commands unless they are those that a client takes without one."""
    usual = url.endswith(f":{USUAL['native_port']}")
    native, http = ("", "") if usual else (f" --url {url}", f" --http {http_url}")
    mqtt = "" if mqtt_port == USUAL["mqtt_port"] else f" -p {mqtt_port}"
    return [
        "Try in another terminal, while the demo runs:",
        f"  fanlight sub 'stock.#' --where \"{WHERE}\"{native}",
        f"  mosquitto_sub{mqtt} -V 5 -t 'stock/#' -D subscribe user-property where '{WHERE}'",
        f"  fanlight explain stock.nasdaq.AAPL --fields '{FIELDS}'{http}",
    ]
