from matchcore.fields import Fields

__all__ = ["values_of"]

def values_of(fields: Fields) -> dict[int, object]: ...
