// Items of menus in lists, whose role they need: PatternFly leaves the lists to its callers, and the library omits some.

import { DropdownGroup, DropdownList } from "@patternfly/react-core";
import { Children, type ReactElement, type ReactNode, cloneElement, isValidElement } from "react";

const isA = (child: ReactNode, type: unknown): child is ReactElement<{ children?: ReactNode }> => isValidElement(child) && child.type === type;

/** The same children; without any list among them, those of groups are in lists, and the others in one. */
export function menuItems(children: ReactNode): ReactNode {
  const all = Children.toArray(children);
  if (hasList(all)) return children;
  const parts: ReactNode[] = [];
  let items: ReactNode[] = [];
  const close = () => {
    if (items.length > 0) parts.push(<DropdownList key={parts.length}>{items}</DropdownList>);
    items = [];
  };
  for (const child of all) {
    if (!isA(child, DropdownGroup)) {
      items.push(child);
      continue;
    }
    close();
    const inside = Children.toArray(child.props.children);
    parts.push(hasList(inside) ? child : cloneElement(child, {}, <DropdownList>{inside}</DropdownList>));
  }
  close();
  return parts;
}

const hasList = (children: ReactNode[]) => children.some((child) => isA(child, DropdownList));
